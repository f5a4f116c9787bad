"""What differs between Wikipedias and is not always in the dump: names of namespaces, prefixes of
other wikis, the word for a redirect, and which letters right after a link belong to it."""

# The words that MediaWiki understands on every wiki, and those that most Wikipedias add, by the number of the
# namespace. A dump that names its namespaces overrides all of this.
_ENGLISH = """
-2 media|-1 special|1 talk|2 user|3 user talk|4 project,wikipedia,wp|5 project talk,wikipedia talk,wt|6 file,image
7 file talk,image talk|8 mediawiki|9 mediawiki talk|10 template,tm|11 template talk|12 help|13 help talk|14 category
15 category talk|100 portal|101 portal talk|118 draft|119 draft talk|710 timedtext|828 module|829 module talk
"""

# Local names: media, special, user, project, file, template, help, category, portal; commas between names of the same.
_NUMBERS = ["-2", "-1", "2", "4", "6", "10", "12", "14", "100"]
_LOCAL = """
ar  ميديا,وسائط|خاص|مستخدم,مستخدمة|ويكيبيديا|ملف,صورة|قالب|مساعدة|تصنيف|بوابة
bg  Медия|Специални|Потребител|Уикипедия|Файл,Картинка|Шаблон|Помощ|Категория|Портал
ca  Mèdia|Especial|Usuari,Usuària|Viquipèdia|Fitxer,Imatge|Plantilla|Ajuda|Categoria|Portal,Viquiprojecte
cs  Média|Speciální|Wikipedista,Wikipedistka,Uživatel|Wikipedie|Soubor|Šablona|Nápověda|Kategorie|Portál
da  Media|Speciel|Bruger|Wikipedia|Fil,Billede|Skabelon|Hjælp|Kategori|Portal
de  Medium|Spezial|Benutzer,Benutzerin|Wikipedia|Datei,Bild|Vorlage|Hilfe|Kategorie|Portal
el  Μέσο|Ειδικό|Χρήστης,Χρήστρια|Βικιπαίδεια|Αρχείο,Εικόνα|Πρότυπο|Βοήθεια|Κατηγορία|Πύλη
eo  Aŭdvidaĵo|Specialaĵo,Speciala|Uzanto,Vikipediisto|Vikipedio|Dosiero|Ŝablono|Helpo|Kategorio|Portalo
es  Medio|Especial|Usuario,Usuaria|Wikipedia|Archivo,Imagen|Plantilla|Ayuda|Categoría|Portal
et  Meedia|Eri|Kasutaja|Vikipeedia|Pilt,Fail|Mall|Juhend|Kategooria|Portaal
eu  Media|Berezi|Lankide|Wikipedia|Fitxategi,Irudi|Txantiloi|Laguntza|Kategoria|Atari
fa  رسانه,مدیا|ویژه|کاربر|ویکی‌پدیا|پرونده,تصویر|الگو|راهنما|رده|درگاه
fi  Media|Toiminnot|Käyttäjä|Wikipedia|Tiedosto,Kuva|Malline|Ohje|Luokka|Teemasivu
fr  Média|Spécial|Utilisateur,Utilisatrice,Discussion|Wikipédia|Fichier,Image|Modèle|Aide|Catégorie|Portail,Projet
gl  Media|Especial|Usuario,Usuaria|Wikipedia|Ficheiro,Imaxe|Modelo|Axuda|Categoría|Portal
he  מדיה|מיוחד|משתמש,משתמשת|ויקיפדיה|קובץ,תמונה|תבנית|עזרה|קטגוריה|פורטל
hi  मीडिया|विशेष|सदस्य|विकिपीडिया|चित्र|साँचा|सहायता|श्रेणी|प्रवेशद्वार
hr  Mediji|Posebno|Suradnik,Suradnica|Wikipedija|Datoteka,Slika|Predložak|Pomoć|Kategorija|Portal
hu  Média|Speciális|Szerkesztő|Wikipédia|Fájl,Kép|Sablon|Segítség|Kategória|Portál
hy  Մեդիա|Սպասարկող|Մասնակից|Վիքիպեդիա|Պատկեր|Կաղապար|Օգնություն|Կատեգորիա|Պորտալ
id  Media|Istimewa|Pengguna|Wikipedia|Berkas,Gambar|Templat|Bantuan|Kategori|Portal
it  Media|Speciale|Utente|Wikipedia|File,Immagine|Template|Aiuto|Categoria|Portale,Progetto
ja  メディア|特別|利用者|Wikipedia|ファイル,画像|テンプレート|ヘルプ|カテゴリ|Portal
ko  미디어|특수,특|사용자|위키백과|파일,그림|틀|도움말|분류|포털,들머리
lt  Medija|Specialus|Naudotojas|Vikipedija|Vaizdas|Šablonas|Pagalba|Kategorija|Vikisritis
ms  Media|Khas|Pengguna|Wikipedia|Fail,Imej|Templat|Bantuan|Kategori|Portal
nl  Media|Speciaal|Gebruiker|Wikipedia|Bestand,Afbeelding|Sjabloon|Help|Categorie|Portaal
no  Medium|Spesial|Bruker|Wikipedia|Fil,Bilde|Mal|Hjelp|Kategori|Portal
pl  Media|Specjalna|Wikipedysta,Wikipedystka|Wikipedia|Plik,Grafika|Szablon|Pomoc|Kategoria|Portal,Wikiprojekt
pt  Multimédia|Especial|Usuário,Usuária,Utilizador|Wikipédia|Ficheiro,Imagem,Arquivo|Predefinição|Ajuda|Categoria|Portal
ro  Media|Special|Utilizator|Wikipedia|Fișier,Fişier,Imagine|Format|Ajutor|Categorie|Portal
ru  Медиа|Служебная|Участник,Участница|Википедия|Файл,Изображение|Шаблон|Справка|Категория|Портал,Проект
sk  Médiá|Špeciálne|Redaktor,Užívateľ|Wikipédia|Súbor,Obrázok|Šablóna|Pomoc|Kategória|Portál
sl  Datoteka-medij|Posebno|Uporabnik|Wikipedija|Slika,Datoteka|Predloga|Pomoč|Kategorija|Portal
sr  Медиј|Посебно|Корисник,Корисница|Википедија|Датотека,Слика|Шаблон|Помоћ|Категорија|Портал
sv  Media|Special|Användare|Wikipedia|Fil,Bild|Mall|Hjälp|Kategori|Portal
th  สื่อ|พิเศษ|ผู้ใช้|วิกิพีเดีย|ไฟล์,ภาพ|แม่แบบ|วิธีใช้|หมวดหมู่|สถานีย่อย
tr  Medya,Ortam|Özel|Kullanıcı|Vikipedi|Dosya,Resim|Şablon|Yardım|Kategori|Portal
uk  Медіа|Спеціальна|Користувач,Користувачка|Вікіпедія|Файл,Зображення|Шаблон|Довідка|Категорія|Портал
vi  Phương tiện|Đặc biệt|Thành viên|Wikipedia|Tập tin,Hình|Bản mẫu|Trợ giúp|Thể loại|Cổng thông tin,Chủ đề
zh  媒体,媒體|特殊|用户,用戶|维基百科,維基百科|文件,檔案,档案,图像,圖像|模板|帮助,幫助|分类,分類|主题,主題
"""

# Codes of Wikipedias: a link with such a prefix leads to the same page in another language.
_CODES = """
aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar bat-smg
bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug bxr ca cbk-zam cdo ce ceb ch cho
chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb dtp dty dv dz ee el eml en eo es et eu ext fa fat ff
fi fiu-vro fj fo fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur guw gv ha hak haw
he hi hif ho hr hsb ht hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd kbp
kcg kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo
lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mos mr mrj ms mt mus mwl my myv mzn na
nah nan nap nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nup nv ny oc olo om or os pa pag pam pap pcd pcm
pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd
se sg sgs sh shi shn si simple sk skr sl sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet
tg th ti tig tk tl tly tn to tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu
xal xh xmf yi yo yue za zea zgh zh zh-classical zh-cn zh-min-nan zh-tw zh-yue zu
"""
LANGUAGES = frozenset(_CODES.split())

# Prefixes of other wikis, with the short forms people write.
_PREFIXES = """
b betawikiversity bugzilla c commons d dictionary doi foundation incubator irc m mail meta metawikipedia
mediawikiwiki mw n oldwikisource otrswiki outreach phab phabricator q quarry quality rev s sep11 species strategy
svn test testwiki ticket toollabs toolforge tools translatewiki v voy w wikia wikibooks wikicities wikidata
wikilivres wikimania wikimedia wikinews wikiquote wikisource wikispecies wikitech wikiversity wikivoyage wikt
wiktionary wmf
"""
SISTERS = frozenset(_PREFIXES.split())

# The word after the # of a redirect page; REDIRECT works everywhere, the others on their own wiki.
_WORDS = """
redirect redirection weiterleitung redirección redireccion redireccionamento redirecionamento rinvia rinvio
doorverwijzing patrz przekieruj tam перенаправление перенапр перенаправлення omdirigering omdiriger ohjaus
uudelleenohjaus přesměruj presmeruj átirányítás redirecteaza yönlendirme yönlendir yönlendi̇rme 転送 リダイレクト
重定向 重新導向 넘겨주기 تحويل تغییر_مسیر تغییرمسیر הפניה đổi alih lencong เปลี่ยนทาง ανακατευθυνση ανακατεύθυνση
пренасочване виж преусмери преусмјери preusmeri preusmjeri preusmeritev peradresavimas suuna redirecció birzuzendu
alidirektu alidirekti վերահղում გადამისამართება айдау перанакіраванне перанакіраваньне пренасочување ridrejto வழிமாற்று
దారిమార్పు पुनर्प्रेषित अनुप्रेषित पुनर्निर्देशन পুনর্নির্দেশ തിരിച്ചുവിടുക tilvísun athsheoladh ail-cyfeirio
aanstuur adkas wiederleiden ווייטערפירן юнәлтү istiqamətləndirmə
"""
REDIRECT_WORDS = frozenset(_WORDS.split())

# English, and scripts that put no blank between words: only Latin letters after a link belong to it.
_UNSPACED = """
en simple ja zh ko yue zh-yue wuu gan hak lzh zh-classical nan zh-min-nan th lo km my bo dz
"""
_TRAIL_LATIN = frozenset(_UNSPACED.split())
_LOWER = "".join(chr(code) for code in range(0xDF, 0x590) if chr(code).islower())


def local_names(language: str) -> dict[str, int]:
    """Return the known names of namespaces in a language, including the English ones."""
    rows = [cell.split(" ", 1) for cell in _ENGLISH.strip().replace("\n", "|").split("|")]
    for line in _LOCAL.strip().splitlines():
        code, _, row = line.partition(" ")
        if code == language.lower():
            rows += map(list, zip(_NUMBERS, row.split("|"), strict=True))
    return {name.strip().lower(): int(number) for number, names in rows for name in names.split(",")}


def trail(language: str) -> str:
    """Return the letters that belong to the link right before them, as the inside of a character class."""
    if language.lower() in _TRAIL_LATIN:
        return "a-z"
    return f"a-z{_LOWER}\u05d0-\u05ea\u0621-\u064a"
